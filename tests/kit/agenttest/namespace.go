package agenttest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace in which a test can run a host with a network of its own. It
// exists until the test ends.
type Namespace struct {
	t    testing.TB
	name string
}

// NewNamespace creates a network namespace that contains only the loopback interface. The name must
// be unique within the test. NewNamespace requires root.
func NewNamespace(t testing.TB, name string) *Namespace {
	t.Helper()
	Root(t, "can make a network namespace")
	n := &Namespace{t, fmt.Sprintf("florete%d-%s", os.Getpid(), name)}
	run(t, exec.Command("ip", "netns", "add", n.name))
	t.Cleanup(func() { run(t, exec.Command("ip", "netns", "delete", n.name)) })
	n.IP("link set lo up")
	return n
}

// IP runs commands of ip(8) in the namespace, such as "link set lo up".
func (n *Namespace) IP(commands ...string) {
	n.t.Helper()
	for _, c := range commands {
		run(n.t, exec.Command("ip", append([]string{"-n", n.name}, strings.Fields(c)...)...))
	}
}

// NFT runs a script of nft(8) in the namespace, for example to drop packets.
func (n *Namespace) NFT(script string) {
	n.t.Helper()
	cmd := n.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	run(n.t, cmd)
}

// Connect adds a network interface with the name card and an address to the namespace, and connects
// it to the bridge br0 of another namespace.
func (n *Namespace) Connect(card, address string, to *Namespace) {
	n.t.Helper()
	port := strings.TrimPrefix(n.name, fmt.Sprintf("florete%d-", os.Getpid())) + card
	n.IP("link add "+card+" type veth peer name "+port+" netns "+to.name, "address add "+address+" dev "+card, "link set "+card+" up")
	to.IP("link set " + port + " master br0 up")
}

// Command returns a command that runs a program in the namespace.
func (n *Namespace) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + n.name, name}, args...)...)
}

// Do calls f on a thread in the namespace. Sockets that f opens remain in the namespace after Do
// returns. Goroutines that f starts do not run in the namespace.
func (n *Namespace) Do(f func()) {
	n.t.Helper()
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		ns, err := os.Open("/run/netns/" + n.name)
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			f()
		}
		ended <- err
	}()
	if err := <-ended; err != nil {
		n.t.Fatalf("namespace %s: %v", n.name, err)
	}
}

func run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}
