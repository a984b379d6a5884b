package own

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
)

// Request describes a need of a kind that the topology defines itself. Request.Request is the JSON
// that the topology declares for the need, which the compiler has already checked.
type Request struct {
	Service spiffe.ID       `json:"service"`
	Request json.RawMessage `json:"request"`
}

// Policy tells how a kind of need that the topology defines is answered, and which hosts may
// request it. Compile decodes it from the policy of the provider host.
type Policy struct {
	settings
	requests server.Requests[Request]

	// hosts counts the hosts that may request the secret of a need. Its keys are those under which
	// the store keeps the rotations of secrets.
	hosts map[string]int
}

// settings contains the settings in providers.<kind>.
type settings struct {
	// Run is the path of the executable that answers requests. It is empty if URL is set.
	Run string `json:"run"`

	// URL is the address of the service that answers requests: an http URL on loopback, or
	// unix:/path. It is empty if Run is set.
	URL string `json:"url"`

	// Values lists the names of the values in an answer.
	Values []string `json:"values"`
}

// Compile decodes the policy of a provider host. The policy must name exactly one executable or URL
// that answers requests, and the names of the values in an answer. Otherwise Compile returns an
// error.
func (k *Kind) Compile(p document.Policy) (*Policy, error) {
	policy := &Policy{hosts: map[string]int{}}
	if err := server.Settings(p, k.Name(), &policy.settings); err != nil {
		return nil, err
	}
	if err := policy.check(); err != nil {
		return nil, fmt.Errorf("policy of %s: kind %q: %w", p.Host, k.Name(), err)
	}
	var err error
	policy.requests, err = server.DecodeGrants(p, k.Name(), func(g document.Grant) (r Request, err error) {
		if err := strictjson.Decode(g.Request, &r); err != nil {
			return r, err
		}
		if r.Service.Kind() != spiffe.KindService {
			return r, fmt.Errorf("service %q: only a service has needs of this kind", r.Service)
		}
		policy.hosts[k.place(r, server.Call{Grant: g})]++
		return r, nil
	})
	return policy, err
}

func (s settings) check() error {
	switch {
	case (s.Run == "") == (s.URL == ""):
		return errors.New("want an executable to run or a URL to call, and one of them")
	case s.Run != "" && !filepath.IsAbs(s.Run):
		return fmt.Errorf("run %q: want an absolute path", s.Run)
	case len(s.Values) == 0:
		return errors.New("values: want those of an answer")
	case s.Run != "":
		return nil
	}
	if path, unix := strings.CutPrefix(s.URL, socket); unix && filepath.IsAbs(path) {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(u.Host)
	if ip, err := netip.ParseAddr(host); u.Scheme != "http" || err != nil || !ip.IsLoopback() {
		return fmt.Errorf("url %q: secrets would cross the network in clear: want http:// on a loopback address, or unix:/path", s.URL)
	}
	return nil
}
