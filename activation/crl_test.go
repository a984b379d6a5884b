package activation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/tests/kit"
)

// TestCRL: a host keeps the CRL of its provider of certificates for other software, and no
// older or forged one in its place.
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
