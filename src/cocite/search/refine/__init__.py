"""Refined answers: better scores for the best hits of samples."""
