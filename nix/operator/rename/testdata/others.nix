# Services and roles that are not renamed.
{
  services = {
    postgres = {
      host = "alpha";
      port = 5432;
    };
    forge = {
      host = "alpha";
      port = 23232;
    };
  };
  roles = {
    node.serviceGroups = [ "control-plane" ];
    operator.serviceGroups = [
      "control-plane"
      "control-plane-write"
    ];
    tools.services = [
      "forge"
      "postgres"
    ];
  };
}
