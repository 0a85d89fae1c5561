"""The paper's experiments with medical images (section 7), on the maps of any tasks."""
