package noderules

// The numbers of the nf_tables netlink interface, from the kernel's
// include/uapi/linux/netfilter/nf_tables.h and nfnetlink.h. They are repeated
// here because golang.org/x/sys/unix has them on Linux only and decoding is to
// work everywhere.
const (
	subsysNFTables = 10 // NFNL_SUBSYS_NFTABLES
	nfnlHeaderLen  = 4  // struct nfgenmsg
	nlHeaderLen    = 16 // struct nlmsghdr

	familyIPv4 = 2  // NFPROTO_IPV4
	familyIPv6 = 10 // NFPROTO_IPV6
)

// Message kinds: the low byte of nlmsg_type.
const (
	msgNewTable   = 0
	msgGetTable   = 1
	msgDelTable   = 2
	msgNewChain   = 3
	msgGetChain   = 4
	msgDelChain   = 5
	msgNewRule    = 6
	msgGetRule    = 7
	msgDelRule    = 8
	msgNewSet     = 9
	msgGetSet     = 10
	msgDelSet     = 11
	msgNewSetElem = 12
	msgGetSetElem = 13
	msgDelSetElem = 14
	msgNewGen     = 15
	msgGetGen     = 16
)

// Attributes.
const (
	attrListElem = 1 // NFTA_LIST_ELEM

	attrTableName  = 1
	attrTableFlags = 2

	attrChainTable  = 1
	attrChainHandle = 2
	attrChainName   = 3
	attrChainHook   = 4
	attrChainType   = 7
	attrHookNum     = 1

	attrRuleTable    = 1
	attrRuleChain    = 2
	attrRuleHandle   = 3
	attrRuleExprs    = 4
	attrRuleUserdata = 7

	attrSetTable   = 1
	attrSetName    = 2
	attrSetFlags   = 3
	attrSetTimeout = 11
	attrSetHandle  = 16

	attrElemListTable = 1
	attrElemListSet   = 2
	attrElemListElems = 3

	attrElemKey      = 1
	attrElemData     = 2
	attrElemFlags    = 3
	attrElemUserdata = 6
	attrElemKeyEnd   = 10

	attrDataValue    = 1
	attrDataVerdict  = 2
	attrVerdictCode  = 1
	attrVerdictChain = 2

	attrExprName = 1
	attrExprData = 2

	attrImmediateDreg = 1
	attrImmediateData = 2

	attrCmpSreg = 1
	attrCmpOp   = 2
	attrCmpData = 3

	attrMetaDreg = 1
	attrMetaKey  = 2
	attrMetaSreg = 3

	attrPayloadDreg   = 1
	attrPayloadBase   = 2
	attrPayloadOffset = 3
	attrPayloadLen    = 4

	// NFTA_MATCH_* and NFTA_TARGET_*, of the expressions that carry the matches
	// and targets of iptables (net/netfilter/nft_compat.c).
	attrCompatName     = 1
	attrCompatRevision = 2
	attrCompatInfo     = 3

	attrLookupSet   = 1
	attrLookupSreg  = 2
	attrLookupDreg  = 3
	attrLookupFlags = 5

	attrNumgenDreg    = 1
	attrNumgenModulus = 2
	attrNumgenOffset  = 4

	attrBitwiseSreg = 1
	attrBitwiseDreg = 2
	attrBitwiseMask = 4
	attrBitwiseXor  = 5

	attrDynsetName = 1

	attrNATType     = 1
	attrNATAddrMin  = 3
	attrNATAddrMax  = 4
	attrNATProtoMin = 5
	attrNATProtoMax = 6

	attrGenID   = 1
	attrGenPID  = 2
	attrGenName = 3
)

// Flags and values.
const (
	tableDormant = 1 // NFT_TABLE_F_DORMANT: the table's chains are not hooked

	setAnonymous = 1  // NFT_SET_ANONYMOUS
	setInterval  = 4  // NFT_SET_INTERVAL
	setMap       = 8  // NFT_SET_MAP
	setTimeout   = 16 // NFT_SET_TIMEOUT
	setEval      = 32 // NFT_SET_EVAL, filled by packets

	elemIntervalEnd = 1 // NFT_SET_ELEM_INTERVAL_END
	elemCatchall    = 2 // NFT_SET_ELEM_CATCHALL

	verdictDrop   = 0
	verdictAccept = 1
	verdictReturn = -5 // NFT_RETURN
	verdictGoto   = -4 // NFT_GOTO
	verdictJump   = -3 // NFT_JUMP

	cmpEq         = 0  // NFT_CMP_EQ
	cmpNeq        = 1  // NFT_CMP_NEQ
	metaL4Proto   = 16 // NFT_META_L4PROTO
	payNetwork    = 1  // NFT_PAYLOAD_NETWORK_HEADER
	payTransport  = 2  // NFT_PAYLOAD_TRANSPORT_HEADER
	natDNAT       = 1  // NFT_NAT_DNAT
	lookupInvert  = 1  // NFT_LOOKUP_F_INV
	hookPreroute  = 0  // NF_INET_PRE_ROUTING
	hookLocalIn   = 1  // NF_INET_LOCAL_IN
	hookForward   = 2  // NF_INET_FORWARD
	hookLocalOut  = 3  // NF_INET_LOCAL_OUT
	hookPostroute = 4  // NF_INET_POST_ROUTING
	regVerdict    = 0  // NFT_REG_VERDICT
	reg1          = 1  // NFT_REG_1, 16 bytes each up to NFT_REG_4
	reg4          = 4
	reg32First    = 8 // NFT_REG32_00, 4 bytes each up to NFT_REG32_15
	reg32Last     = 23
	registerBytes = 64

	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)
