# The kinds of need. Each kind is one file here and one package below providers/; no other list
# names them. A kind is a set of:
#
#   doc        description of its providers
#   port       distance of its port from hosts.<name>.providerPort
#   alone      why only one host can provide it while providers share no store; absent if
#              several can
#   apart      what several hosts that provide it do not share, for people; optional
#   operated   true if its process answers operators, through kind config; optional
#   announced  true if its process answers callers that the forwarder announces, at a socket;
#              optional
#   settings   attributes of providers.<kind>, besides those of all kinds
#   service    attributes of services.<name> for this kind; optional
#   entries    attributes of mkCluster that are sets of named things; optional. Each is
#              { doc; type; on; shown; }, with on: topology → host → the names of those that
#              concern it; shown: attributes of one in the exported topology
#   policy     topology → the part of the policy for its providers; optional
#   needs      topology with access → host → its needs of this kind, which needs.nix completes
#   reasons    clean topology → why somebody must provide it, one text for each reason
#   label      need → its name in modules, below its service; the name of the kind if absent
#   check      arguments of check/ → faults { top; service = name: s: …; entries.<attribute> =
#              name: e: …; } and { warnings = …; } of the same form; optional
{
  cert = import ./cert.nix;
  config = import ./config.nix;
  database = import ./database.nix;
  federation = import ./federation.nix;
  file = import ./file.nix;
  git = import ./git.nix;
  jwt = import ./jwt.nix;
  oidc = import ./oidc.nix;
  secret = import ./secret.nix;
  ssh = import ./ssh.nix;
  tls = import ./tls.nix;
  token = import ./token.nix;
}
