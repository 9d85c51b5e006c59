"""The clusters that the page can look at, each as an `Observed`."""
