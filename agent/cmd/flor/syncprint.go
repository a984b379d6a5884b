package main

import (
	"fmt"
	"time"

	"github.com/florete/florete/activation/confirm"
	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
)

// synced is the result of flor sync, in the form that flor sync --json prints.
type synced struct {
	Provider string          `json:"provider"`
	Changes  plan.Plan       `json:"changes"`
	Change   *hostdir.Change `json:"change,omitempty"`
	Undone   *hostdir.Change `json:"undone,omitempty"` // this change, if it was undone before
}

// changes compares the documents in force with the fetched documents. The result has the form that
// florctl plan prints.
func changes(c confirm.Fetched) (plan.Plan, error) {
	return plan.Compare(snapshot(c.Before()), snapshot(c.Set))
}

func snapshot(s documents.Set) compile.Snapshot {
	raw := map[string]compile.Raw{document.DocManifest: asRaw(s.Document)}
	if s.Policy != nil {
		raw[document.DocPolicy] = asRaw(*s.Policy)
	}
	return compile.Snapshot{Topology: compile.Topology{Name: s.Manifest.Cluster}, Documents: map[string]map[string]compile.Raw{s.Manifest.Host: raw}}
}

func asRaw(d document.Document) compile.Raw {
	envelope, body, _ := d.Bytes()
	return compile.Raw{Body: string(body), Envelope: string(envelope)}
}

func (s *syncer) printConfirmed(id string) error {
	if s.json {
		return nil
	}
	_, err := fmt.Fprintf(s.out, "change %s is confirmed: what it put in force stays\n", id)
	return err
}

// printChanges shows the changes to the user before they are applied. With --json it prints
// nothing, because the result is printed as one JSON value at the end.
func (s *syncer) printChanges(r synced, changed bool) error {
	if s.json {
		if changed && !s.dryRun {
			return nil
		}
		return terminal.PrintJSON(s.out, r)
	}
	if changed && !r.Changes.Empty() {
		return r.Changes.Text(s.out, false)
	}
	text := "nothing changes: what it has is in force"
	switch {
	case r.Undone != nil:
		text = fmt.Sprintf("nothing changes: it has nothing newer than %s, which went back", r.Undone)
	case changed:
		text = "nothing changes but the version of the documents"
	}
	_, err := fmt.Fprintf(s.out, "provider %s: %s\n", r.Provider, text)
	return err
}

func (s *syncer) printChange(r synced) {
	if s.json {
		_ = terminal.PrintJSON(s.out, r)
		return
	}
	fmt.Fprintf(s.out, "\nIn force until %s; to keep it, from a new login: %s sync --confirm %s\n",
		r.Change.Deadline.UTC().Format(time.DateTime+" MST"), s.Program("flor"), r.Change.ID)
}
