"""Tools around Mask R-CNN: data sets, training batches, synthetic images, films, drawing and average precision."""
