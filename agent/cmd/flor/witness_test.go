package main

import (
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

// TestWitnessedLogs checks that flor witness shows an audit log together with the faults that an
// operator has accepted.
func TestWitnessedLogs(t *testing.T) {
	log := func(provider, kind string) hostdir.Witnessed {
		return hostdir.Witnessed{Provider: provider, Kind: kind}
	}
	a := hostdir.AcceptedAudit{By: "root"}
	a.Provider, a.Kind = "forge", "cert"
	rows := logs([]hostdir.Witnessed{log("forge", "oidc"), log("forge", "cert")}, []hostdir.AcceptedAudit{a})
	if len(rows) != 2 || len(rows[0].Accepted) != 0 || len(rows[1].Accepted) != 1 || rows[1].Accepted[0].By != "root" {
		t.Errorf("%+v", rows)
	}
	var none strings.Builder
	if err := terminal.PrintJSON(&none, logs(nil, nil)); err != nil || none.String() != "[]\n" {
		t.Errorf("%q, %v, want an empty list", none.String(), err)
	}
}
