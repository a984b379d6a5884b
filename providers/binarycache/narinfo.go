package binarycache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo"
	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/nix-community/go-nix/pkg/nixbase32"
	"github.com/nix-community/go-nix/pkg/nixhash"
	"github.com/nix-community/go-nix/pkg/storepath"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/pubkey"
)

// hashLen is the length of the hash in a store path.
var hashLen = nixbase32.EncodedLen(storepath.PathHashSize)

// hashPattern matches the hash in the name of a store path. contentsPattern matches the name of a
// file of contents, which consists of a SHA-256 hash and the name of the compression.
var (
	hashPattern     = regexp.MustCompile(`^[0-9a-df-np-sv-z]{32}$`)
	contentsPattern = regexp.MustCompile(`^([0-9a-df-np-sv-z]{52})\.nar(\.[a-z0-9]{1,8})?$`)
)

// maxInfo is the largest size of a narinfo in bytes. maxContents is the largest size of contents,
// both compressed and decompressed.
const (
	maxInfo     = 1 << 20
	maxContents = 32 << 30
)

// contentsFile reports whether a name is that of a contents file with the given hash.
func contentsFile(sum []byte, name string) bool {
	part := contentsPattern.FindStringSubmatch(name)
	return part != nil && part[1] == nixbase32.EncodeToString(sum)
}

// parseInfo parses the narinfo of the path with the given hash. It also returns the name of the
// file with the path's contents.
func parseInfo(hash string, b []byte) (i *narinfo.NarInfo, file string, err error) {
	i, err = narinfo.Parse(bytes.NewReader(b))
	if err != nil {
		return nil, "", err
	}
	if err := i.Check(); err != nil {
		return nil, "", err
	}
	if err := document.CheckStorePath(i.StorePath); err != nil || hashOf(i.StorePath) != hash {
		return nil, "", fmt.Errorf("StorePath %.100q, want %s/%s-…", i.StorePath, storepath.StoreDir, hash)
	}
	for _, r := range i.References {
		if err := document.CheckStorePath(storepath.StoreDir + "/" + r); err != nil {
			return nil, "", fmt.Errorf("reference %w", err)
		}
	}
	for _, of := range []struct {
		name string
		hash *nixhash.HashWithEncoding
		size uint64
	}{{"Nar", i.NarHash, i.NarSize}, {"File", i.FileHash, i.FileSize}} {
		switch {
		case of.hash == nil || of.hash.Algo() != nixhash.SHA256:
			return nil, "", fmt.Errorf("%sHash: want a SHA-256", of.name)
		case of.size == 0 || of.size > maxContents:
			return nil, "", fmt.Errorf("%sSize %d, want 1 to %d", of.name, of.size, int64(maxContents))
		}
	}
	for _, prefix := range []string{"nar/", "nar/" + hash + "/"} {
		if name, ok := strings.CutPrefix(i.URL, prefix); ok && contentsFile(i.FileHash.Digest(), name) {
			return i, name, nil
		}
	}
	return nil, "", fmt.Errorf("URL %.100q, want nar/ and the FileHash", i.URL)
}

// hashOf returns the hash in a store path, or in the name of a store path.
func hashOf(path string) string {
	return strings.TrimPrefix(path, storepath.StoreDir+"/")[:hashLen]
}

// verify returns an error unless one of the keys has signed the path and contents of a narinfo. It
// tries each key, because two keys may have the same name while keys are being replaced.
func verify(i *narinfo.NarInfo, keys []string) error {
	text := i.Fingerprint()
	names := []string{}
	for _, s := range i.Signatures {
		names = append(names, s.Name)
		for _, k := range keys {
			pin, err := signature.ParsePublicKey(k)
			if err == nil && pubkey.CheckEd25519(pin.Data) == nil && pin.Verify(text, s) {
				return nil
			}
		}
	}
	return fmt.Errorf("signed by %.200q, want a signature by one of trust.signingKeys: nix copy --to 'http://…?secret-key=FILE' makes it", names)
}

// sameHash returns an error unless the given hash and size of contents match those in a narinfo.
func sameHash(i *narinfo.NarInfo, sum []byte, size int64) error {
	if uint64(size) != i.NarSize || !bytes.Equal(sum, i.NarHash.Digest()) {
		return errors.New("its contents are " + describe(sum, size) + ", its narinfo is about " + describe(i.NarHash.Digest(), int64(i.NarSize)))
	}
	return nil
}

func describe(sum []byte, size int64) string {
	if len(sum) != sha256.Size {
		return hex.EncodeToString(sum)
	}
	return fmt.Sprintf("sha256:%s of %d bytes", nixbase32.EncodeToString(sum), size)
}
