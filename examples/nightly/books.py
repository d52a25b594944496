"""Sums up a day of sales.csv. The newest day in it stands for yesterday."""

import csv
import json
import os
import sys
from collections import Counter

day = json.load(sys.stdin)["SumUp"]["day"].strip()
folder = os.environ.get("ORGANISM_FOLDER", ".")
with open(os.path.join(folder, "sales.csv"), newline="") as file:
    sales = list(csv.DictReader(file))
if day.lower() == "yesterday":
    day = max(sale["day"] for sale in sales)
of_day = [sale for sale in sales if sale["day"] == day]
pieces = Counter()
for sale in of_day:
    pieces[sale["item"]] += int(sale["pieces"])
made = sum(int(sale["pieces"]) * float(sale["price"]) for sale in of_day)
sold = ", ".join(f"{count} × {item}" for item, count in pieces.most_common()) or "nothing"
print(json.dumps({"Figures": {"text": f"{day}: {sold}; {made:.2f} euros in {len(of_day)} orders."}}))
