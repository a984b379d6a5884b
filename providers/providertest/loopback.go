package providertest

import (
	"fmt"
	"os"
	"sync/atomic"
)

var loopbacks atomic.Uint32

// Loopback returns a loopback address to listen on. The address stays free while the listener is
// restarted, because no other process uses the IP address, and the kernel does not assign the port
// to other processes.
func Loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 128|byte(pid>>16), byte(pid>>8), byte(pid), 4000+loopbacks.Add(1))
}
