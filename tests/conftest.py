"""For all tests: hypothesis without a deadline, since a loaded machine is slow and that is no fault of the code."""

from hypothesis import settings

settings.register_profile("scalebook", deadline=None, print_blob=True)
settings.load_profile("scalebook")

collect_ignore = ["record_transformers.py"]  # run by hand, with packages that the tests do not need
