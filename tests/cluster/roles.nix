# Every host has the role `node`.
{
  node.services = [
    "metrics"
    "time"
  ];
  writer.serviceGroups = [ "apps" ];
  reader.services = [
    "auth"
    "outline"
  ];
  beacon.services = [ "outline" ];
  oidc-client.services = [ "auth" ];
  operator.serviceGroups = [
    "apps"
    "control-plane"
    "control-plane-write"
  ];
}
