"""What is shown of scores: settings, views, the widget, figures and pages. Needs no torch."""
