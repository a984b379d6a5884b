package attacks

import (
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestForwarder attacks forwarders. It attacks the forwarder of host b directly, without the
// forwarder of host c. It attacks the forwarder of host c from processes of other accounts.
func TestForwarder(t *testing.T) {
	t.Run("alice herself is let through", func(t *testing.T) {
		agenttest.Root(t, "can run processes of another user")
		if err := agenttest.DialAs(t, uidAlice, start(t).listener(t, "wiki")); err != nil {
			t.Fatal(err)
		}
	})
	run(t, []attack{
		{
			name: "bob at a service that he may not reach",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.svid(t, c.c, "cert-user-bob"))
			},
			refusal: "Application error 0x",
		},
		{
			name: "alice at a service that nobody may reach",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "secret", c.svid(t, c.c, "cert-user-alice"))
			},
			refusal: "Application error 0x",
		},
		{
			name: "alice of another CA",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", kit.NewCA().Issue(kit.ID("user/alice"), time.Hour))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "alice signed by bob's key",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", signedBy(t, c.svid(t, c.c, "cert-user-bob"), kit.ID("user/alice")))
			},
			refusal: "CRYPTO_ERROR",
		},
		{
			name: "process of another user at alice's listener",
			try: func(t *testing.T, c *cluster) error {
				return agenttest.DialAs(t, uidStranger, c.listener(t, "wiki"))
			},
			refusal: "reset",
			root:    "can run processes of another user",
		},
	})
}
