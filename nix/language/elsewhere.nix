# What another cluster has that has to do with this one, as it is declared here: those of its
# identities that have roles, and those of its services that roles lead to. `called` is the name
# of one of these by example.
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
  inherit (import ./formats) forwarderAddress port strings;
in
{
  identities =
    of
      "those of its identities that reach something here, by what follows the trust domain in their IDs: `\"user/alice\"`, `\"service/backup\"`"
      (
        attrsOf (
          record "a foreign identity" {
            roles = of "what it may reach" strings;
          }
        )
      );
  services =
    of
      "those of its services that are reached from here, by what follows `service/` in their IDs: `\"wiki\"`, `\"forge/wiki\"`; they are called `${called}`"
      (
        attrsOf (
          record "a foreign service" {
            address =
              required "where forwarders that publish it are called, each with its port: one, or a list"
                "\"192.0.2.1:4610\""
                (oneOrMore forwarderAddress);
            port = required "the port callers use" "80" port;
            protocol = of "what it speaks" (enum [
              "tcp"
              "udp"
            ]);
            roles = of "roles that reach it" strings;
          }
        )
      );
}
