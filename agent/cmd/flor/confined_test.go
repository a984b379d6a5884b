package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestAgentIsConfined checks that flor agent run restricts itself with Landlock, and that it
// reports if it cannot.
func TestAgentIsConfined(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.Echo(t))
	s := newService(t, c.Ursula)
	s.start()
	r, _, err := agentstatus.Fetch(t.Context(), c.Ursula.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if r.Unconfined != "" {
		t.Skip("NOT RUN: " + r.Unconfined)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "NoNewPrivs:\t1") { // Landlock requires it
		t.Error("the agent is not confined, and does not report it")
	}
}
