package forward_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestBehindNAT checks that the address to call may differ from the address to listen on. The
// address of the service's own network leads callers elsewhere, where nobody answers.
func TestBehindNAT(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	nat, _ := newLossy(t, c.Publish.Listen[0])
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	c.Reach.Reach[0].Endpoints = []document.Addresses{{nobody.LocalAddr().String(), nat.addr}}
	c.acceptLaptop(t)
	c.start(t)
	if !reaches(c.Local) {
		t.Errorf("not reachable: %v", report(t, c.Laptop).Refusals)
	}
}

// TestNameOfTheOwnMachine checks that a name that resolves to 127.0.1.1, as Debian writes it into
// hosts(5), or to several addresses does not affect the addresses to listen on.
func TestNameOfTheOwnMachine(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	port := strconv.Itoa(kit.Port())
	kit.Names(t, map[string][]string{"ursula.example.org": {"127.0.1.1", "::1"}})
	c.Publish.Listen = []string{":" + port}
	c.Reach.Reach[0].Endpoints = []document.Addresses{{"ursula.example.org:" + port}}
	c.acceptUrsula(t)
	c.acceptLaptop(t)
	c.start(t)
	if !reaches(c.Local) {
		t.Errorf("not reachable: %v", report(t, c.Laptop).Refusals)
	}
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		if l, err := net.ListenPacket("udp", net.JoinHostPort(ip, port)); err == nil {
			l.Close()
			t.Errorf("nobody listens on %s", ip)
		}
	}
}

// TestAddressThatIsNotTheHosts checks that an address that the host does not have is a problem, and
// that the others are listened on.
func TestAddressThatIsNotTheHosts(t *testing.T) {
	c := newCluster(t, agenttest.Echo(t))
	c.Publish.Listen = append([]string{"203.0.113.5:4611", "203.0.113.6:4611"}, c.Publish.Listen...)
	c.acceptUrsula(t)
	c.start(t)
	if p := report(t, c.Ursula).Problems; len(p) != 4 || !strings.Contains(p[0], "203.0.113.5:4611") || !strings.Contains(p[3], "203.0.113.6:4611") {
		t.Errorf("problems %q, want one for each of 203.0.113.5 and 203.0.113.6, over UDP and TCP", p)
	}
	if !reaches(c.Local) {
		t.Error("not reachable at the other address")
	}
}
