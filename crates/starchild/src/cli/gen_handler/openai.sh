# Needs curl. OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL come from where the daemon starts.
request=$(jq -n --arg model "${OPENAI_MODEL:-gpt-4o-mini}" --arg prompt "$prompt" \
  '{model: $model, messages: [{role: "user", content: $prompt}]}')
reply=$(curl -sS --fail-with-body --max-time 100 \
  "${OPENAI_BASE_URL:-https://api.openai.com/v1}/chat/completions" \
  -H "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
  -H "Content-Type: application/json" \
  -d "$request" | jq -r '.choices[0].message.content // empty')
