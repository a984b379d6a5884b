package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// tolerance is the acceptable difference between the clocks of two hosts. It is less than a minute,
// because an enrolment proof is valid for only one minute.
const tolerance = 30 * time.Second

// setClock returns the command that starts clock synchronization. On NixOS the command names
// timesyncd, the default there, because timedatectl cannot change units.
func setClock() string {
	if _, err := os.Stat("/etc/NIXOS"); err == nil {
		return "systemctl restart systemd-timesyncd.service"
	}
	return "timedatectl set-ntp true"
}

// answer is the answer of one provider to a health request. It is used to compare the clocks.
type answer struct {
	document.Provider
	name  string        // name of the provider's host
	kind  string        // kind of need that the provider serves
	ahead time.Duration // difference of the provider's clock from this host's
	dated bool          // whether ahead is known
	err   error
}

// request sends a health request to every provider of the host at the same time, and waits for the
// answers.
func (h *host) request(ctx context.Context) []*answer {
	var answers []*answer
	trust, err := trust.NewRoots(h.manifest.TrustDomain, h.manifest.Trust.Roots)
	var all sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(h.manifest.Providers)) {
		for _, kind := range slices.Sorted(maps.Keys(h.manifest.Providers[name])) {
			a := &answer{Provider: h.manifest.Providers[name][kind], name: name, kind: kind, err: err}
			answers = append(answers, a)
			if err == nil {
				all.Go(func() { a.request(ctx, trust) })
			}
		}
	}
	all.Wait()
	return answers
}

func (a *answer) request(ctx context.Context, roots *trust.Roots) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // skips only host names; VerifyConnection checks the chain and the SPIFFE ID
		VerifyConnection: func(cs tls.ConnectionState) error {
			id, err := roots.Verify(cs.PeerCertificates, time.Now(), x509.ExtKeyUsageServerAuth)
			if late := new(trust.ValidityError); errors.As(err, &late) {
				err = nil // the check of the clock reports a wrong clock
			}
			if err == nil && id != a.ID {
				err = fmt.Errorf("certificate is for %s, want %s", id, a.ID)
			}
			return err
		},
	}}
	defer transport.CloseIdleConnections()
	type clock struct {
		ahead time.Duration
		known bool
	}
	c, err := conns.Race(ctx, a.Addresses, func(ctx context.Context, address string) (c clock, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/health", nil)
		if err != nil {
			return c, err
		}
		sent := time.Now()
		res, err := transport.RoundTrip(req)
		if err != nil {
			return c, err
		}
		res.Body.Close()
		took := time.Since(sent)
		if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			c = clock{date.Sub(sent.Add(took / 2)).Round(time.Second), true}
		}
		return c, nil
	}, func(clock) {})
	a.ahead, a.dated, a.err = c.ahead, c.known, err
}

// clock compares this host's clock with the clocks of its providers, and with the validity of its
// SVIDs.
func (h *host) clock(context.Context) (string, []Finding) {
	var found []Finding
	compared := 0
	for _, a := range h.answers {
		if !a.dated {
			continue
		}
		compared++
		if a.ahead.Abs() > tolerance {
			way := "behind"
			if a.ahead < 0 {
				way = "ahead of"
			}
			found = append(found, fix(fmt.Sprintf("this host's clock is %s %s that of %s", a.ahead.Abs(), way, a.name), setClock()))
		}
	}
	for _, n := range h.manifest.Needs {
		id, err := n.CertID()
		if svid := h.identities.SVID(id); hostdir.IsForwarderSVID(n) && err == nil && svid != nil && h.now.Before(svid.Cert.Leaf.NotBefore) {
			found = append(found, fix(
				fmt.Sprintf("the SVID of %s begins %s after this host's clock", id.Short(), svid.Cert.Leaf.NotBefore.Sub(h.now).Round(time.Second)), setClock()))
		}
	}
	return fmt.Sprintf("compared with %d providers", compared), found
}
