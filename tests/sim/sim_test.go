package sim

import (
	"testing"
	"time"
)

// Hosts boot while no provider is up, which comes last.
func TestProvidersUpLast(t *testing.T) {
	Run(t, Config{}, func(f *Fleet) {
		f.Boot()
		f.Sleep(20 * time.Minute)
		f.Up()
		f.Settle(6 * time.Minute)
		f.Want("unavailable", 10)
	})
}
