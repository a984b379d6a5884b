# Limits of services and users. The hosts of the services that a user reaches enforce the user's
# limits.
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    intersectAttrs
    ;
  inherit (import ../lib)
    isInvalid
    only
    optionalAttrs
    toSet
    ;

  names = attrNames unlimited;
  written = limits: filter (n: limits.${n} != null) names;
  unlimited = {
    bytesPerSecond = null;
    connections = null;
    opensPerSecond = null;
  };
  values = limits: only (filter (n: !isInvalid limits.${n}) (written limits)) limits;
in
{
  # Reports whether any limit is written, right or wrong.
  # any :: Limits -> Bool
  any = limits: written limits != [ ];

  # The limits of a service, or of a relay, in the form of documents.
  # attribute :: Limits -> AttrSet
  attribute =
    limits:
    if limits == unlimited then { } else optionalAttrs (values limits != { }) { limits = values limits; };

  # The users with limits that reach a service that the host publishes, and their entries in its
  # manifest.
  # of :: { topology, access } -> { users :: Host -> [String]; entries :: Host -> [AttrSet]; }
  of =
    { topology, access }:
    let
      t = topology;
      limited = only (filter (
        u: written t.users.${u}.limits != [ ] && t.users.${u}.hosts != [ ]
      ) (attrNames t.users)) t.users;
      reaching =
        host:
        if limited == { } then
          { }
        else
          intersectAttrs (toSet (
            concatMap (role: t.holders.${role}.users) (
              concatMap (
                s:
                concatMap (
                  id: concatMap (port: access.leadingTo s.name (id + port.key)) s.ports
                ) (s.idsOn host.name)
              ) host.running
            )
          )) limited;
    in
    {
      users = host: attrNames (reaching host);
      entries =
        host:
        filter (e: e.limits != { }) (
          map (u: {
            inherit (u) id;
            limits = values u.limits;
          }) (attrValues (reaching host))
        );
    };
}
