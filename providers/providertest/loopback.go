package providertest

import (
	"fmt"
	"os"
	"sync/atomic"
)

var loopbacks atomic.Uint32

// Loopback returns a new loopback address to listen on. A test can listen on it again after closing
// the listener, because its IP address depends on the process ID and the kernel never assigns such
// a port to another process.
func Loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 128|byte(pid>>16), byte(pid>>8), byte(pid), 4000+loopbacks.Add(1))
}
