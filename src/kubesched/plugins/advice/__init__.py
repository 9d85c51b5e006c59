"""What in-tree plugins say beyond their rejections: base classes that add `AdvicePlugin`'s answers to each of them."""
