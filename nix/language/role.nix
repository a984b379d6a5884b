# The record of a role.
let
  inherit (import ./types)
    attrsOf
    between
    default
    listOf
    of
    record
    ;
  inherit (import ./formats)
    account
    flag
    strings
    tags
    ;
in
record "a role" {
  services = of "Services that the role reaches. `\"wiki:metrics\"` is one port of a service. Of a service that each host has its own of, `\"shell@forge\"` is that of one host and `\"shell@eu\"` those of a group of hosts or with a tag. `\"tickets@blue\"` is `federated.blue.services.tickets` or `clusters.blue.services.tickets`." strings;
  serviceGroups = of "Groups whose services the role reaches." strings;
  roles = of "Other roles: this one reaches what they reach and requires what they require." strings;
  except = of "Services that the role does not reach, whatever else in it leads to them. Written as in `services`." strings;
  requires = of "Capabilities that the host of a node or service with this role must have." tags;
  logins =
    of
      "Accounts as which users with the role may log in over SSH, by service with `protocol = \"ssh\"`, written as in `services`: `{ \"shell@eu\" = [ \"deploy\" ]; }`. The users must also reach the service, by this role or another."
      (attrsOf (listOf account));
  privileged = of "Permits `\"root\"` in `logins`." flag;
  request = of "Lets users request the role for some hours. It is theirs while a grant is in force, which an approver signs with a key of `approvalKeys`." (
    record "a request for a role" {
      by = of "Teams whose users may request the role. Users in a team up to a time (`usersUntil`) may not." strings;
      approve = of "Teams whose users may approve a request. Nobody approves a request of their own." strings;
      most = default "Longest time of a grant, in hours." 4 (between 1 168 "hours");
    }
  );
}
