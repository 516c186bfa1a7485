package apiserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/kconverge/kconverge/engine/lab/pki"
)

// serving is the server's identity: a certificate for the listening address
// signed by a CA that exists only in this process.
type serving struct {
	ca, cert, key []byte // PEM
}

func newServing(host string, now time.Time) (serving, error) {
	ca, err := pki.NewAuthority("kconverge-lab-ca", now)
	if err != nil {
		return serving{}, err
	}
	own, err := ca.Server("kconverge-lab", "localhost", "127.0.0.1", "::1", host)
	if err != nil {
		return serving{}, err
	}
	return serving{ca: ca.PEM(), cert: own.Public, key: own.Private}, nil
}

var errBadToken = errors.New("the bearer token is not the lab's")

// tokenAuthenticator lets in whoever presents the token, as an administrator.
// The hashes are compared, so neither the token's length nor its content
// shows in the time taken.
func tokenAuthenticator(token string) authenticator.Request {
	want := sha256.Sum256([]byte(token))
	admin := &user.DefaultInfo{
		Name:   "kconverge-lab",
		Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
	}
	return bearertoken.New(authenticator.TokenFunc(func(_ context.Context, got string) (*authenticator.Response, bool, error) {
		sum := sha256.Sum256([]byte(got))
		if subtle.ConstantTimeCompare(want[:], sum[:]) != 1 {
			return nil, false, errBadToken
		}
		return &authenticator.Response{User: admin}, true, nil
	}))
}
