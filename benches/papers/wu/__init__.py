"""The experiments of Wu, Fredrikson, Wu, Jha & Naughton: private regression."""
