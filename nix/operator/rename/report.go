package rename

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// maxMentions bounds the list of files that mention the former name.
const maxMentions = 20

// report prints what was renamed, what stays, and what becomes different with the next deployment.
func (o Options) report(next map[string]any, changes []change, before, after compile.Snapshot, r repository, changed files) error {
	var b strings.Builder
	if o.DryRun {
		fmt.Fprintf(&b, "This would rename service %s to %s. Nothing was changed.\n", o.Old, o.New)
	} else {
		fmt.Fprintf(&b, "Service %s is now %s in the flake. To undo this, restore the files with git.\n", o.Old, o.New)
	}
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	section("Stays as it is, with its data:", kept(next, o.New))
	again, err := requested(before, after)
	if err != nil {
		return err
	}
	section("Is requested anew when you publish or deploy, by", again)
	section("Is different then:", o.different(before.Topology, after.Topology, changes))
	section("Also contain the word "+o.Old+", and were not changed. Check them:", mentions(r, o.Old, changed))
	_, err = o.Out.Write([]byte(b.String()))
	return err
}

// kept describes what providers keep for the service.
func kept(next map[string]any, name string) (all []string) {
	service := object(next, "services", name)
	each := func(attribute string, line func(name string, of map[string]any) string) {
		of := object(service[attribute])
		for _, n := range sorted(of) {
			all = append(all, line(n, object(of[n])))
		}
	}
	each("databases", func(_ string, d map[string]any) string {
		return fmt.Sprintf("database %v at %v", d["called"], d["on"])
	})
	each("git", func(_ string, t map[string]any) string {
		return fmt.Sprintf("account %v at %v", t["called"], t["on"])
	})
	each("needs", func(n string, need map[string]any) string {
		return fmt.Sprintf("%v-%v-%s, with its files", need["kind"], need["called"], n)
	})
	if sso := object(service["sso"]); sso["called"] != nil {
		all = append(all, fmt.Sprintf("OIDC client of %v, with its ID and secret", sso["called"]))
	}
	secrets := object(next["secrets"])
	for _, n := range sorted(secrets) {
		readers, _ := object(secrets[n])["readers"].([]any)
		if slices.ContainsFunc(readers, func(r any) bool { return object(r)["service"] == name }) {
			all = append(all, "secret "+n)
		}
	}
	return all
}

// requested returns the needs of the service that hosts request for the first time, by host.
func requested(before, after compile.Snapshot) (all []string, err error) {
	for _, host := range slices.Sorted(maps.Keys(after.Documents)) {
		var ids [2][]string
		for i, s := range []compile.Snapshot{before, after} {
			var manifest struct {
				Needs []struct {
					ID  string    `json:"id"`
					For spiffe.ID `json:"for"`
				} `json:"needs"`
			}
			if raw := s.Documents[host][document.DocManifest]; raw.Body != "" {
				if err := json.Unmarshal([]byte(raw.Body), &manifest); err != nil {
					return nil, err
				}
			}
			for _, n := range manifest.Needs {
				ids[i] = append(ids[i], n.ID)
			}
		}
		fresh := slices.DeleteFunc(ids[1], func(id string) bool { return slices.Contains(ids[0], id) })
		if len(fresh) > 0 {
			all = append(all, "host "+host+": "+strings.Join(fresh, ", "))
		}
	}
	return all, nil
}

// different describes what has another name after the change.
func (o Options) different(before, after compile.Topology, changes []change) (all []string) {
	is := after.Services[o.New]
	for _, id := range is.IDs {
		all = append(all, fmt.Sprintf("its certificates and tokens have the identity %s: services and other clusters that check the former one must accept this", id))
	}
	if is.Published {
		all = append(all, fmt.Sprintf("callers reach it at %s.%s%s, and no more at %[4]s.%[2]s%[3]s: change programs that call it, or write services.%[1]s.aliases = [ \"%[4]s\" ];", o.New, after.TrustDomain, spiffe.Suffix, o.Old))
	}
	all = append(all,
		fmt.Sprintf("files are delivered to needs/<kind>-%s… instead of needs/<kind>-%s…, except those of needs of your own kinds", o.New, o.Old),
		fmt.Sprintf("units of NixOS modules find them at services.florete.needs.%s, and facts at topology.services.%[1]s.facts", o.New))
	if pin := o.pins(before, after); pin != "" {
		all = append(all, fmt.Sprintf("it moves from %s to %s, because replicas are placed by its name: to prevent that, write services.%s%s", strings.Join(before.Services[o.Old].Hosts, ", "), strings.Join(is.Hosts, ", "), o.New, pin))
	}
	for _, c := range changes {
		if c.kind == replaces && matches(c.path, "providers.*.issuer") {
			all = append(all, fmt.Sprintf("the address of the issuer in providers.%v is %s: tokens and sign-ins of the former one end", c.path[1], c.to))
		}
	}
	return all
}

// mentions returns the lines of other files that contain a word.
func mentions(r repository, word string, changed files) (all []string) {
	whole := regexp.MustCompile(`(^|[^A-Za-z0-9_-])` + regexp.QuoteMeta(word) + `($|[^A-Za-z0-9_-])`)
	for _, name := range r.names {
		if _, edited := changed[name]; edited || !r.isGit {
			continue
		}
		text, ok := r.read(name)
		if !ok || bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if whole.MatchString(line) {
				if len(all) == maxMentions {
					return append(all, "and more")
				}
				all = append(all, fmt.Sprintf("%s:%d", name, i+1))
			}
		}
	}
	return all
}
