package archive_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// fleet is a stream of the documents of so many hosts, 8 KiB each, of which every tenth
// differs between editions, and one has 16 MiB; and the key that signed them.
func fleet(b *testing.B, hosts int, serial int64, edition int) ([]byte, string) {
	b.Helper()
	key := kit.SigningKey("demo-1")
	all := archive.SignedTree{}
	note := func(host string, kib int) string {
		var text strings.Builder
		for i := range kib * 8 {
			fmt.Fprintf(&text, `{"id":"spiffe://demo.flor/service/%06d","listen":"127.0.0.1:4656","digest":"%x"},`, i, sha256.Sum256(fmt.Append(nil, host, i)))
		}
		return text.String()
	}
	for i := range hosts {
		host, kib := fmt.Sprintf("host%05d", i), 8
		if i == 0 {
			kib = 16 << 10
		}
		of := 0
		if i%10 == 0 {
			of = edition
		}
		all[host] = providertest.Tree(key, serial, note(fmt.Sprint(host, of), kib), host)[host]
	}
	var stream bytes.Buffer
	if err := all.Encode(&stream); err != nil {
		b.Fatal(err)
	}
	return stream.Bytes(), key.ToPublicKey().String()
}

// BenchmarkFleet imports 10,000 hosts, and another edition of them, and reads.
func BenchmarkFleet(b *testing.B) {
	const hosts = 10_000
	path := filepath.Join(b.TempDir(), "state.db")
	db, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	a := archive.Archive{Store: db}
	size := func(b *testing.B) {
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6, "MB-store")
	}
	edition := 0
	for _, name := range []string{"first", "next"} {
		b.Run("import/"+name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				edition++
				stream, key := fleet(b, hosts, int64(edition), edition)
				b.StartTimer()
				r, err := archive.NewStreamReader(bytes.NewReader(stream))
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := a.Import(b.Context(), r, archive.Terms{Signers: signers.Any(key), Keep: 10}); err != nil {
					b.Fatal(err)
				}
			}
			size(b)
		})
	}
	for name, host := range map[string]string{"host": "host04711", "provider": "host00000"} {
		b.Run("same/"+name, func(b *testing.B) {
			d, _, err := a.Documents(b.Context(), host, "")
			if err != nil {
				b.Fatal(err)
			}
			tag := hostapi.Artifact{Documents: d}.Tag()
			for b.Loop() {
				if _, same, err := a.Documents(b.Context(), host, tag); err != nil || !same {
					b.Fatal(same, err)
				}
			}
		})
		b.Run("read/"+name, func(b *testing.B) {
			for range b.N {
				if d, _, err := a.Documents(b.Context(), host, ""); err != nil || len(d) != 1 {
					b.Fatal(len(d), err)
				}
			}
		})
	}
}
