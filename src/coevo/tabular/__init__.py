"""From a table in a file to a trained model and back: what stands behind `coevo train`."""
