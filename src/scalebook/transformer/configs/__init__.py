"""Other people's descriptions of models, read field by field."""
