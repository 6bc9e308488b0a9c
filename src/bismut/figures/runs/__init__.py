"""Pictures of any run, from the labelled tree that it left."""

from bismut.figures.runs.pictures import Picture, pictures, save_picture

__all__ = ["Picture", "pictures", "save_picture"]
