package activation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/tests/kit"
)

// TestCRL checks that a host keeps the CRL of its certificate provider for other software, and does
// not replace it by an older or forged one.
func TestCRL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		number := func(want int64) {
			t.Helper()
			synctest.Wait()
			lists, err := h.config.State.CRLs()
			if err != nil || len(lists) != 1 || lists[0].Number.Int64() != want {
				t.Errorf("%d lists, %v, want number %d", len(lists), err, want)
			}
		}
		h.forge.SetCRL(5, 0, nil)
		stop := h.run()
		time.Sleep(4 * time.Minute)
		number(5)
		h.forge.SetCRL(6, 0, nil)
		time.Sleep(2 * time.Hour)
		number(6)
		h.forge.SetCRL(4, 0, nil)
		time.Sleep(2 * time.Hour)
		number(6)
		h.forge.SetCRL(7, 0, kit.NewCA().Issuing)
		time.Sleep(2 * time.Hour)
		number(6)
		stop()
		for _, want := range []string{"CRL: of number 4, it had 6 before", "CRL: x509"} {
			if !strings.Contains(h.lines(), want) {
				t.Errorf("no event %q in\n%s", want, h.lines())
			}
		}
		h.forge.SetCRL(8, 0, nil)
		stop = h.run()
		time.Sleep(40 * time.Minute) // when audit logs are witnessed
		number(8)
		stop()
	})
}

// TestCRLConnection checks that the first CRL comes over the connection that brings a certificate,
// also if there are several.
func TestCRLConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := func(crl bool) int {
			h := newHost(t)
			for _, of := range []string{"api", "web", "wiki"} {
				h.manifest.Needs = append(h.manifest.Needs, kit.CertNeed(kit.ID("service/"+of), "forge"))
			}
			h.deploy()
			if crl {
				h.forge.SetCRL(5, 0, nil)
			}
			defer h.run()()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if lists, err := h.config.State.CRLs(); crl && (err != nil || len(lists) != 1) {
				t.Errorf("%d lists, %v, want one", len(lists), err)
			}
			if n := h.forge.CRLRequests(); n != 1 {
				t.Errorf("%d requests for it", n)
			}
			return h.forge.Connections()
		}
		if with, without := connections(true), connections(false); with != without {
			t.Errorf("%d connections, without a CRL %d", with, without)
		}
	})
}
