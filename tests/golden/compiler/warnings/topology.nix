# A group without hosts, and an incomplete acknowledgement, which is one fault and not two.
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
