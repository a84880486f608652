"""From a table in a file to a trained model, its predictions and its report."""
