package providertest

import (
	"fmt"
	"os"
	"sync/atomic"
)

var loopbacks atomic.Uint32

// Loopback returns an unused loopback address. A test can listen on it, stop, and listen on it
// again, because no other process uses the same IP address and the kernel never assigns the port.
func Loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 128|byte(pid>>16), byte(pid>>8), byte(pid), 4000+loopbacks.Add(1))
}
