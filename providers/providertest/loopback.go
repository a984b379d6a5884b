package providertest

import (
	"fmt"
	"os"
	"sync/atomic"
)

var loopbacks atomic.Uint32

// Loopback returns an address to listen on, which stays free across restarts: the IP address is
// this process's own, and the kernel does not hand out the port.
func Loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 128|byte(pid>>16), byte(pid>>8), byte(pid), 4000+loopbacks.Add(1))
}
