package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// lifetime is how long a lab can run before clients refuse it.
const lifetime = 365 * 24 * time.Hour

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	last atomic.Int64 // serial number
}

// Pair is a certificate, or a public key, with its private key, in PEM.
type Pair struct {
	Public, Private []byte
}

// NewAuthority makes an authority whose certificates hold from an hour before now.
// Its private key is nowhere but in the Authority.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %s: %w", name, err)
	}
	a := &Authority{key: key}
	template := &x509.Certificate{
		SerialNumber:          a.serial(),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	a.pem = certificatePEM(der)
	return a, nil
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Server signs a certificate for a server that is reached under the hosts: names
// or addresses.
func (a *Authority) Server(name string, hosts ...string) (Pair, error) {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	return a.sign(leaf)
}

// Client signs a certificate that Kubernetes takes for the user with the groups
// (CommonName and Organization, k8s.io/apiserver
// pkg/authentication/request/x509, CommonNameUserConversion).
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) sign(leaf *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", leaf.Subject.CommonName, err)
	}
	leaf.SerialNumber = a.serial()
	leaf.NotBefore, leaf.NotAfter = a.cert.NotBefore, a.cert.NotAfter
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %s: %w", leaf.Subject.CommonName, err)
	}
	private, err := privatePEM(key)
	return Pair{Public: certificatePEM(der), Private: private}, err
}

// NewKeys makes keys that sign tokens, such as those of service accounts.
func NewKeys() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encoding a key: %w", err)
	}
	private, err := privatePEM(key)
	return Pair{Public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), Private: private}, err
}

func (a *Authority) serial() *big.Int { return big.NewInt(a.last.Add(1)) }

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
