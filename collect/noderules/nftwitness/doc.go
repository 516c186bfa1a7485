// Package nftwitness reads a node's rules by other means than collect/noderules:
// from the JSON that the nft program prints. Tests compare the two. It shares
// nothing with the decoder but the names of things, and only tests import it.
package nftwitness
