package activation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

func TestRenewal(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Hour)
		key := h.file("cert-node", hostdir.FileKey)
		time.Sleep(3*24*time.Hour - time.Hour)
		h.wantExit(stop(), event.ExitFulfilled)
		calls := h.forge.Calls("cert-node")
		for i, g := range gaps(calls) {
			most := 24 * time.Hour * 66 / 100
			if g > most+time.Second || g < most*94/100 {
				t.Errorf("renewed after %s, want at most %s and not much less", g, most)
			}
			if calls[i+1].Enrols || calls[i+1].Key == calls[0].Key {
				t.Errorf("renewal %d: enrols %v, key %s", i, calls[i+1].Enrols, calls[i+1].Key)
			}
		}
		if !calls[0].Enrols || len(calls) < 5 {
			t.Fatalf("%d requests, the first enrols: %v", len(calls), calls[0].Enrols)
		}
		if h.file("cert-node", hostdir.FileKey) == key {
			t.Error("the key outlived its certificate")
		}
		h.wantCalls(h.forge, "oidc-outline", 1)
		for _, g := range gaps(h.forge.Calls("config-documents")) {
			if g > 900*time.Second || g < 850*time.Second {
				t.Errorf("documents after %s", g)
			}
		}
	})
}

// TestRenewalFailsWhileTheOldIsGood checks that while renewal fails, delivered values stay in use
// and needs that depend on them proceed.
func TestRenewalFailsWhileTheOldIsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		time.Sleep(20 * time.Hour)
		refuse(h.forge, "cert-node", hostapi.Errorf(hostapi.CodeUnavailable, "down"))
		h.manifest.Needs = append(h.manifest.Needs, kit.OIDCNeed("oidc-late", Service, "forge"))
		h.serial++
		h.deploy()
		h.wantExit(h.once(), event.ExitWaiting)
		if s := h.state("cert-node"); s.State != hostdir.NeedWaiting || s.Digest == "" {
			t.Errorf("cert-node: %+v", s)
		}
		if s := h.state("oidc-late"); s.State != hostdir.NeedFulfilled {
			t.Errorf("oidc-late: %+v", s)
		}
	})
}

func TestExpiredSVIDEnrolsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		time.Sleep(48 * time.Hour)
		h.wantExit(h.once(), event.ExitFulfilled)
		calls := h.forge.Calls("cert-node")
		if len(calls) != 2 || !calls[1].Enrols {
			t.Fatalf("%+v", calls)
		}
	})
}

// TestRefusedSVIDEnrolsAgain checks that a host whose SVID is expired by the provider's clock
// enrols with its proof, which does not depend on a clock.
func TestRefusedSVIDEnrolsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			if c.Need == "cert-node" && !c.Enrols {
				return hostapi.Errorf(hostapi.CodeClock, "certificate is of the past")
			}
			return nil
		})
		time.Sleep(17 * time.Hour)
		stop := h.run()
		time.Sleep(time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		calls := h.forge.Calls("cert-node")
		if len(calls) != 3 || calls[1].Enrols || !calls[2].Enrols {
			t.Fatalf("%+v", calls)
		}
	})
}

func TestNewRootEnrolsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		h.CA = kit.NewCA()
		h.manifest.Trust.Roots = []string{h.CA.RootPEM()}
		h.serial++
		h.deploy()
		h.wantExit(h.once(), event.ExitFulfilled)
		if calls := h.forge.Calls("cert-node"); len(calls) != 2 || !calls[1].Enrols {
			t.Fatalf("%+v", calls)
		}
		if h.file("cert-node", hostdir.FileBundle) != h.CA.RootPEM() {
			t.Error("the bundle is not the manifest's roots")
		}
	})
}

func TestGenerationRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		h.need("oidc-outline").Generation = 2
		h.serial++
		h.deploy()
		h.wantExit(h.once(), event.ExitFulfilled)
		h.wantCalls(h.forge, "oidc-outline", 2)
		h.wantCalls(h.forge, "cert-node", 1)
		if got := h.file("oidc-outline", "client-secret"); got != "secret-2" {
			t.Errorf("client-secret is %q", got)
		}
		if len(h.notified) != 2 {
			t.Errorf("units notified %d times, want 2", len(h.notified))
		}
	})
}

func TestWipedHostGetsTheSameClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		secret, key := h.file("oidc-outline", "client-secret"), h.file("cert-node", hostdir.FileKey)
		if err := os.RemoveAll(string(h.config.State)); err != nil {
			t.Fatal(err)
		}
		h.wantExit(h.once(), event.ExitFulfilled)
		if h.file("oidc-outline", "client-secret") != secret {
			t.Error("another client")
		}
		if h.file("cert-node", hostdir.FileKey) == key {
			t.Error("the same key")
		}
		calls := h.forge.Calls("cert-node")
		if !calls[1].Enrols {
			t.Error("did not enrol")
		}
		oidc := h.forge.Calls("oidc-outline")
		if oidc[0].Key != oidc[1].Key {
			t.Error("the same request has another idempotency key")
		}
	})
}

func TestMissingFileIsFetchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Minute)
		file := filepath.Join(hostdir.Current(h.config.State.Need("oidc-outline")), "client-id")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		h.file("oidc-outline", "client-id")
		h.wantCalls(h.forge, "oidc-outline", 2)
	})
}

// TestLostAnswer checks that a lost answer is requested again with the same key and body, and
// matches the private key on disk.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		lose := true
		h.forge.SetRefuse(func(Call) *hostapi.Error {
			if lose {
				panic("cut")
			}
			return nil
		})
		h.wantExit(h.once(), event.ExitWaiting)
		pending, err := os.Stat(filepath.Join(h.config.State.Need("cert-node"), "pending.json"))
		if err != nil || pending.Mode().Perm() != 0o600 {
			t.Fatalf("pending: %v %v", pending, err)
		}
		lose = false
		time.Sleep(time.Minute)
		h.wantExit(h.once(), event.ExitFulfilled)
		calls := h.forge.Calls("cert-node")
		if len(calls) != 2 || calls[0].Key != calls[1].Key || calls[0].Body != calls[1].Body {
			t.Fatalf("%+v", calls)
		}
		if _, err := os.Stat(filepath.Join(h.config.State.Need("cert-node"), "pending.json")); err == nil {
			t.Error("the answered request is still on disk")
		}
	})
}

// TestCutOffRenewal checks that the request of a renewal that was cut off is repeated unchanged.
func TestCutOffRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		time.Sleep(20 * time.Hour)
		release := make(chan struct{})
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			if c.Need == "cert-node" {
				<-release
			}
			return nil
		})
		stop := h.run()
		time.Sleep(time.Second)
		stop()
		close(release)
		h.wantExit(h.once(), event.ExitFulfilled)
		calls := h.forge.Calls("cert-node")
		if len(calls) != 3 || calls[1].Key != calls[2].Key || calls[0].Key == calls[1].Key {
			t.Fatalf("%+v", calls)
		}
		if s := h.state("cert-node"); s.Total != 2 {
			t.Errorf("counted %d attempts, want 2: stopping is no failure", s.Total)
		}
	})
}

// TestExpiredAnswerIsNotAskedForAgain checks that the request for an answer that has expired
// meanwhile is not repeated for ever.
func TestExpiredAnswerIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.forge.SetRefuse(func(Call) *hostapi.Error { return hostapi.Errorf(hostapi.CodeUnavailable, "down") })
		h.wantExit(h.once(), event.ExitWaiting)
		h.forge.SetRefuse(nil)
		h.forge.Lifetime = -time.Second
		time.Sleep(time.Minute)
		h.wantExit(h.once(), event.ExitWaiting)
		h.wantLine("transient (clock)")
		h.forge.Lifetime = 0
		time.Sleep(time.Minute)
		h.wantExit(h.once(), event.ExitFulfilled)
	})
}

func TestHostKeyOfAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		own := h.config.HostKey
		h.config.HostKey = NewCluster(t).HostKey
		h.wantExit(h.once(), event.ExitRefused)
		h.wantLine("but the manifest of ursula declares")
		h.wantLine("cert-node: attempt 1 failed: denied (host-key)")
		h.config.HostKey = own + ".missing"
		h.wantExit(h.once(), event.ExitWaiting) // it may come
		h.wantLine("cert-node: attempt 1 failed: transient (host-key)")
		h.wantLine("give the host's private key with --ssh-host-key")
		h.wantCalls(h.forge, "", 0)
		h.config.HostKey = own
		h.wantExit(h.once(), event.ExitFulfilled)
	})
}

// TestHostKeyComes checks that a host key that is missing or incomplete at first delays the host by
// seconds.
func TestHostKeyComes(t *testing.T) {
	for name, edit := range map[string]func(own []byte) []byte{
		"missing":   func([]byte) []byte { return nil },
		"empty":     func([]byte) []byte { return []byte{} },
		"cut":       func(own []byte) []byte { return own[:len(own)/2] },
		"another's": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				own, err := os.ReadFile(h.HostKey)
				if err == nil {
					err = os.Remove(h.HostKey)
				}
				if err != nil {
					t.Fatal(err)
				}
				if edit == nil {
					kit.WriteHostKey(h.HostKey)
				} else if b := edit(own); b != nil {
					if err := os.WriteFile(h.HostKey, b, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				stop := h.run()
				time.Sleep(30 * time.Minute)
				if s := h.state("cert-node"); s.Error == nil || s.Error.Code != fetch.CodeHostKey.Name || time.Until(s.Next.Time) > 5*time.Minute {
					t.Errorf("%+v, want it tried again within five minutes", s)
				}
				h.wantCalls(h.forge, "", 0)
				if err := os.WriteFile(h.HostKey, own, 0o600); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				for _, need := range []string{"cert-node", "config-documents", "oidc-outline"} {
					if s := h.state(need); s.State != hostdir.NeedFulfilled {
						t.Errorf("%s ten seconds after the key came: %+v", need, s)
					}
				}
				h.wantExit(stop(), event.ExitFulfilled)
			})
		})
	}
}

func TestNothingSecretIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		var status strings.Builder
		h.config.Status = func(s event.Summary) { status.WriteString(s.Line() + s.Table()) }
		h.wantExit(h.once(), event.ExitFulfilled)
		var said strings.Builder
		said.WriteString(h.lines() + status.String())
		for _, e := range h.events {
			var back event.Event
			if err := json.Unmarshal(e.JSON(), &back); err != nil || back.Event != e.Event {
				t.Fatalf("%s: %v", e.JSON(), err)
			}
			said.Write(e.JSON())
		}
		err := filepath.WalkDir(string(h.config.State), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "current") {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if b, err := os.ReadFile(path); err != nil || info.Mode().Perm()&0o044 == 0 {
				return err
			} else {
				said.Write(b)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		key := h.file("cert-node", hostdir.FileKey)
		for _, secret := range []string{"secret-1", "PRIVATE KEY", strings.Split(key, "\n")[1]} {
			if strings.Contains(said.String(), secret) {
				t.Errorf("%q is told or readable by all", secret)
			}
		}
	})
}

func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Second)
		if _, err := Run(t.Context(), h.config); err == nil || !strings.Contains(err.Error(), "another activation (pid ") {
			t.Errorf("second activation: %v", err)
		}
		stop()
		h.wantExit(h.once(), event.ExitFulfilled)
	})
}
