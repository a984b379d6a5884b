package cert_test

import (
	"testing"
	"time"

	"florete"
	"florete/providers/api"
	"florete/providers/providertest"
)

// TestReplaced: a node is replaced by another machine, with another host key. The
// former one, whose certificate is good for hours, gets nothing any more.
func TestReplaced(t *testing.T) {
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	e.Start()
	ask := func(c *api.Client, need string, id florete.ID) error {
		_, err := c.Do(t.Context(), api.PathSVID, api.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: body(t, id)})
		return err
	}
	enrol := func() {
		t.Helper()
		r := api.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(t, ursula)}
		if _, err := e.Stranger(ursula).Enrol(t.Context(), r, e.HostKey(ursula)); err != nil {
			t.Fatal(err)
		}
	}
	good := func(c *api.Client, what string) {
		t.Helper()
		if err := ask(c, "cert-node", ursula); err != nil {
			t.Errorf("%s: its own: %v", what, err)
		}
		if err := ask(c, "cert-service-outline", outline); err != nil {
			t.Errorf("%s: its service's: %v", what, err)
		}
	}

	former := e.Client(ursula)
	good(former, "a node that never enrolled here")
	enrol()
	former = e.Client(ursula)
	time.Sleep(time.Second) // certificates count seconds
	enrol()
	good(former, "a node that enrolled twice with one host key")

	e.ReplaceHostKey(ursula)
	e.Publish(providertest.Serial + 1)
	e.Restart()
	providertest.WantError(t, ask(former, "cert-node", ursula), api.Transient, api.CodeUntrusted)
	if err := ask(former, "cert-service-outline", outline); err != nil {
		t.Errorf("the other machine is not there yet: %v", err)
	}

	time.Sleep(time.Second)
	enrol()
	providertest.WantError(t, ask(former, "cert-node", ursula), api.Transient, api.CodeUntrusted)
	providertest.WantError(t, ask(former, "cert-service-outline", outline), api.Transient, api.CodeUntrusted)
	good(e.Client(ursula), "the machine in its place")

	raishan := providertest.ID("node/raishan")
	if err := ask(e.Client(raishan), "cert-node", raishan); err != nil {
		t.Errorf("another node: %v", err)
	}
}
