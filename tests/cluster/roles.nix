# Every host has the role `node` without saying so.
{
  node.groups = [ "control-plane" ];
  writer.groups = [ "apps" ];
  reader.services = [ "auth" "outline" ];
  beacon.services = [ "outline" ];
  oidc-client.services = [ "auth" ];
  operator.groups = [ "apps" "control-plane" "control-plane-write" ];
}
