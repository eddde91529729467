"""Figures that answer: explorers, their controls, and what a page or a notebook needs to show them. Standard library only.

>>> explorer("roofline", B=1024).state["B"]
1024
"""

from scalebook.live.controls import Choice, Control, Player, Slider, Text, Toggle
from scalebook.live.explorers import EXPLORERS, Explorer, Live, Table, explorer

__all__ = ["EXPLORERS", "Choice", "Control", "Explorer", "Live", "Player", "Slider", "Table", "Text", "Toggle", "explorer"]
