# The attributes that describe another cluster: its identities that have roles in this cluster, and
# its services that roles in this cluster reach. The argument `called` is an example of the name of
# such a cluster.
# { called } -> attributes of a record
{ called }:
let
  inherit (import ./types)
    attrsOf
    enum
    of
    oneOrMore
    record
    required
    ;
  inherit (import ./formats)
    forwarderAddress
    port
    strings
    tlsName
    ;
in
{
  identities =
    of
      "Identities of the other side that have roles here, by the part of their SPIFFE ID after the trust domain: `\"user/alice\"`, `\"service/backup\"`."
      (
        attrsOf (
          record "a foreign identity" {
            roles = of "Roles that this identity has here." strings;
          }
        )
      );
  services =
    of
      "Services of the other side that roles here lead to, by the part of their SPIFFE ID after `service/`: `\"wiki\"`, `\"forge/wiki\"`. Callers here use names such as `${called}`."
      (
        attrsOf (
          record "a foreign service" {
            address =
              required "Addresses and ports of the forwarders that publish the service."
                "\"192.0.2.1:4610\""
                (oneOrMore forwarderAddress);
            port = required "Port that callers use." "80" port;
            protocol = of "what it speaks" (enum [
              "tcp"
              "udp"
            ]);
            roles = of "Roles whose holders reach the service." strings;
            tlsName = of "Public name at which strangers reach the service through an ingress of this cluster. A role of the ingress must lead to the service, and the other side must let the node of the ingress reach it." tlsName;
            ingress = of "Rules for strangers at the public name, as in `services.<name>.ingress`. Needs `tlsName`." (
              import ./ingress.nix
            );
          }
        )
      );
}
