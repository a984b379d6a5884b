package binarycache

import (
	"bufio"
	"compress/bzip2"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/nix-community/go-nix/pkg/narinfo"
)

// maxWindow is the largest memory for decompression, in bytes. It is the memory that xz -9 needs.
const maxWindow = 64 << 20

// decompress returns a reader of contents that Nix compressed.
func decompress(compression string, r io.Reader) (io.ReadCloser, error) {
	switch compression {
	case "none":
		return io.NopCloser(r), nil
	case "xz":
		d, err := xz.NewReader(r, maxWindow)
		return io.NopCloser(d), err
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "bzip2":
		return io.NopCloser(bzip2.NewReader(r)), nil
	}
	return nil, fmt.Errorf("compression %.20q, want xz, zstd, bzip2 or none", compression)
}

// verifyContents returns an error unless a file has the contents that a narinfo describes. It reads
// the file once, in constant memory.
func verifyContents(ctx context.Context, file string, i *narinfo.NarInfo) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	if uint64(stat.Size()) != i.FileSize {
		return fmt.Errorf("its file has %d bytes, its narinfo says %d", stat.Size(), i.FileSize)
	}
	r, err := decompress(i.Compression, bufio.NewReaderSize(until{ctx, f}, 1<<16))
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(r, int64(i.NarSize)+1))
	if err != nil {
		return fmt.Errorf("its file, compressed by %s: %w", i.Compression, err)
	}
	return sameHash(i, sum.Sum(nil), size)
}

// until is a reader that fails once its context has ended.
type until struct {
	context.Context
	r io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
