# No group has a host; an acknowledgement that lacks something is one fault, not two.
{ base, merge, ... }:
merge base {
  hostGroups."eu/fra".tags = [ "europe" ];
  acknowledge = [
    {
      id = "FL041";
      reason = "it lacks its place";
    }
    "FL041"
  ];
}
