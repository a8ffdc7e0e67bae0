"""An optional endpoint on the loopback address, so that other programs can use the loaded model."""
