package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/providers/store"
)

// unanswered reports whether an error leaves open if a request was carried out, or means that
// another member may answer the request.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		switch e.Code() {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
			return true
		}
		return errors.Is(err, rpctypes.ErrNotLeader) || errors.Is(err, rpctypes.ErrTooManyRequests)
	}
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return false // of this package
	}
	switch s.GRPCStatus().Code() {
	// A member returns Unknown when its own waiting has ended, and the transport does for a member
	// that ends in the middle of an answer ("unexpected HTTP status code"). A refusal of etcd is an
	// EtcdError or has a code of its own.
	case codes.Unknown, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
		return true
	}
	return false
}

// refused converts a refusal of etcd to an error of package store.
func refused(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return fmt.Errorf("%w: etcd has reached its quota", store.ErrFull)
	}
	return err
}
