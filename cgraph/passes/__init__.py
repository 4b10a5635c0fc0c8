PASSES = ()
