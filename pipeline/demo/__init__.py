"""The demo's word problems: the stories they are told in, and the defects planted among them."""
