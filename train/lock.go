package train

import "errors"

// errLocked says that another process holds a lock.
var errLocked = errors.New("train: locked")
