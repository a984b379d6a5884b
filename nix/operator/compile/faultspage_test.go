package compile

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/nar"
)

const faultsHead = `# Faults

This page is for an operator whose cluster does not compile or has warnings. It describes
every fault of the compiler: the cause, an example from ` + "`florctl validate`" + `, and the cure.

<!-- Written by: go test ./nix/operator/compile -run TestFaultsPage -update -->

A fault has a place in the topology, a problem, the value found and a remedy. While there is an *error*,
the hosts that it is about have no documents, and nothing can be published. A *warning* prevents
nothing. If the topology is as you want it, acknowledge the warning:

` + "```nix" + `
acknowledge = [ { id = "FL041"; place = "services.wiki"; reason = "opens on Monday"; } ];
` + "```" + `

` + "`florctl validate --json`" + ` prints faults as data, and ` + "`--strict`" + ` treats warnings as errors. The numbers
are stable: no number is used again for another fault.

| fault | severity | meaning |
| --- | --- | --- |
`

// TestFaultsPage checks that the page of faults lists every rule, with an example from its golden
// case or from florctl's own check.
func TestFaultsPage(t *testing.T) {
	all, shown := rules(t), faultExamples(t)
	var causes map[string]string
	nixEval(t, "import ../../check/causes.nix", &causes)
	page := bytes.NewBufferString(faultsHead)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(page, "| [%s](#%s) | %s | %s |\n", id, strings.ToLower(id), all[id].Severity, all[id].Title)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		cause, cure, found := strings.Cut(causes[id], " Cure: ")
		if !found || shown[id] == "" {
			t.Errorf("%s: cause and cure %q, example %q", id, causes[id], shown[id])
		}
		fmt.Fprintf(page, "\n## %s\n\n**%s** (%s). %s\n\n```text\n%s\n```\n\n**Cure:** %s\n", id,
			strings.ToUpper(all[id].Title[:1])+all[id].Title[1:], all[id].Severity, cause, shown[id], cure)
		delete(causes, id)
	}
	if len(causes) > 0 {
		t.Errorf("nix/check/causes.nix has rules that nix/check/rules.nix does not have: %v", slices.Sorted(maps.Keys(causes)))
	}
	const path = "../../../docs/reference/faults.md"
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, page.Bytes()) {
		t.Errorf("%s is not current, %v, want: go test ./nix/operator/compile -run TestFaultsPage -update", path, err)
	}
}

// faultExamples returns a line of florctl validate for each rule.
func faultExamples(t *testing.T) map[string]string {
	t.Helper()
	shown := map[string]string{}
	for _, f := range florctlFaults(t) {
		if shown[f.ID] == "" {
			shown[f.ID] = f.String()
		}
	}
	for name, files := range evaluate() {
		id, _, _ := strings.Cut(strings.ToUpper(name), "-")
		for line := range strings.Lines(files["topology.nix"].Report) {
			line = strings.TrimSpace(line)
			if shown[id] == "" && strings.HasPrefix(line, id+" ") {
				shown[id] = line
			}
		}
	}
	return shown
}

// florctlFaults returns faults that florctl finds after the evaluation: of certificates, of files
// and of several clusters.
func florctlFaults(t *testing.T) (faults []Fault) {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, pem := range []string{
		"-----BEGIN CERTIFICATE-----",
		root(func(c *x509.Certificate) { c.NotAfter = now.AddDate(0, 0, -1) }),
		root(func(c *x509.Certificate) { c.NotBefore = now.AddDate(0, 0, 1) }),
		root(func(c *x509.Certificate) { c.IsCA = false }),
		root(func(c *x509.Certificate) { c.URIs[0].Host = "other.flor" }),
		root(func(c *x509.Certificate) { c.NotAfter = now.AddDate(0, 0, 1) }),
		weakRoot(t),
	} {
		faults = append(faults, CheckRoots([]string{pem}, "demo.flor", now)...)
	}

	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"ca.key": keyTexts(t)["ca.key"], "users/bob.json": `{ "roles": [ ], "roles": [ ] }`})
	var archive bytes.Buffer
	if err := nar.DumpPath(&archive, dir); err != nil {
		t.Fatal(err)
	}
	ofFiles, err := fileFaults(&archive, "")
	if err != nil {
		t.Fatal(err)
	}
	faults = append(faults, ofFiles...)

	cluster := func(name, text string) (r Report) {
		r.Cluster = name
		if err := json.Unmarshal([]byte(text), &r.together); err != nil {
			t.Fatal(err)
		}
		return r
	}
	alice := `"Known": ["spiffe://demo.flor/user/alice"]`
	for _, all := range [][]Report{
		{cluster("red", `{}`), cluster("red", `{}`)},
		{cluster("red", `{"TrustDomain": "demo.flor", "Roots": ["a"]}`), cluster("blue", `{"TrustDomain": "demo.flor", "Roots": ["b"]}`)},
		{cluster("red", `{"Services": {"wiki": "spiffe://demo.flor/service/wiki"}}`), cluster("blue", `{"Services": {"wiki": "spiffe://demo.flor/service/wiki"}}`)},
		{cluster("red", `{"TrustDomain": "demo.flor", `+alice+`}`),
			cluster("blue", `{"TrustDomain": "demo.flor", "Clusters": {"red": {"Identities": ["spiffe://demo.flor/user/alicia"]}}}`)},
		{cluster("red", `{"TrustDomain": "demo.flor", `+alice+`}`), cluster("blue", `{"TrustDomain": "demo.flor", `+alice+`, "Clusters": {"red": {}}}`)},
		{cluster("red", `{"TrustDomain": "demo.flor"}`),
			cluster("blue", `{"TrustDomain": "demo.flor", "Clusters": {"red": {"Entrances": {"spiffe://demo.flor/service/tickets": ["spiffe://demo.flor/node/front"]}}}}`)},
		{cluster("red", `{"TrustDomain": "red.flor"}`), cluster("blue", `{"TrustDomain": "demo.flor", "Clusters": {"red": {}}}`)},
		{cluster("red", `{"TrustDomain": "demo.flor"}`),
			cluster("blue", `{"TrustDomain": "demo.flor", "Clusters": {"red": {"SignIns": [{"Caller": "spiffe://demo.flor/node/forge", "Need": "oidc-wiki", "Request": {"service": "spiffe://demo.flor/service/wiki"}}]}}}`)},
	} {
		compareTrust(all)
		faults = append(faults, all[1].Faults...)
	}
	const key = "ssh-ed25519 AAAA…"
	host := machine{ID: "spiffe://demo.flor/node/forge", SSHHostKey: key, ForwarderPort: 4610}
	return append(faults, compareHosts("forge", host, "in cluster red host forge, of the same SSH host key "+key+",", host)...)
}
