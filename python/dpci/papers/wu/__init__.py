"""Wu, Fredrikson, Wu, Jha & Naughton: private regression."""
